package a

import "testing"

func TestGood(*testing.T) {}

func TestBad(t *testing.T) { t.Error("the reason") }
