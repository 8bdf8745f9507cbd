module caskeleton.dev

go 1.26
