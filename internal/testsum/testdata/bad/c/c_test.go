package c

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	m.Run()
	fmt.Println("main failed")
	os.Exit(3)
}

func TestGood(*testing.T) {}
