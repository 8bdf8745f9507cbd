// Command victim passes every failpoint twice and then says so.
package main

import (
	"fmt"

	"caskeleton.dev/internal/failpoint"
)

func main() {
	for range 2 {
		for _, p := range failpoint.Points() {
			failpoint.Hit(p)
		}
	}
	fmt.Println("survived")
}
