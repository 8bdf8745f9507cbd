package fault_test

import (
	"errors"
	"fmt"

	"caskeleton.dev/fault"
)

func ExampleNew() {
	cause := errors.New("40P01")
	err := fmt.Errorf("placing the order: %w", fault.New(fault.DBDeadlock, "orders.Place", cause))

	fmt.Println(errors.Is(err, fault.DBDeadlock), fault.Retryable(err), fault.StatusOf(err))
	fmt.Println(fault.CodeOf(err).ClientText())
	// Output:
	// true true 409
	// The request collided with another one.
}

func ExampleNewCode() {
	outOfStock := fault.NewCode(fault.Spec{
		Name: "OUT_OF_STOCK", Category: fault.CategoryConflict, Status: 409,
		Client: "The item is sold out.", Hint: "Nothing to do, unless the warehouse says otherwise.",
	})
	err := fault.New(outOfStock, "orders.Place", nil)

	fmt.Println(err, fault.CodeOf(err) == outOfStock)
	// Output: orders.Place: OUT_OF_STOCK true
}

func ExampleInvalid() {
	err := fault.Invalid("orders.Place", fault.Field{Path: "items[0].quantity", Problem: "is 0", Fix: "send 1 to 1000"})

	for _, f := range fault.FieldsOf(err) {
		fmt.Println(f.Path, f.Problem+":", f.Fix)
	}
	// Output: items[0].quantity is 0: send 1 to 1000
}
