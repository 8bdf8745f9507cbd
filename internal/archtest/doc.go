// Package archtest holds the repository's rules as tests. Each failure says which rule was broken, why there is one, and what to do. A new package
// gets one line in the table of layers; everything else is found by walking the tree.
package archtest
