package main

import (
	"os"
	"testing"
)

// TestMain makes the test's own program the product where a test starts it as such.
func TestMain(m *testing.M) {
	if os.Getenv(asProduct) != "" {
		main()
	}
	os.Exit(m.Run())
}

const asProduct = "COUNTERSIGN_TEST_AS_PRODUCT"
