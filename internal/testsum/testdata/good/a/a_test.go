package a

import "testing"

func TestOne(t *testing.T) {
	t.Log("quiet where it passes")
	t.Run("sub", func(*testing.T) {})
}

func TestTwo(*testing.T) {}
