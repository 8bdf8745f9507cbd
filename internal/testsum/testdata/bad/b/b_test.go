package b

func init() { doesNotBuild() }
