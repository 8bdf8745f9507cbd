package fault_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

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

// carrierError says itself what a log may have of it: not the address.
type carrierError struct {
	Parcel  int
	Address string
}

func (e *carrierError) Error() string {
	return fmt.Sprintf("the carrier refused parcel %d to %s", e.Parcel, e.Address)
}

// LogValue implements [slog.LogValuer].
func (e *carrierError) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("the carrier refused parcel %d", e.Parcel))
}

func ExampleReason() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	refused := fault.New(fault.Internal, "shipping.Send", &carrierError{Parcel: 7, Address: "12 Elm Street"})
	quoting := fault.New(fault.Internal, "shipping.Send", errors.New("no van for 12 Elm Street"))

	log.Error("not sent", "error", fault.Reason(refused))
	log.Error("not sent", "error", fault.Reason(quoting))
	// Output:
	// level=ERROR msg="not sent" error="shipping.Send: INTERNAL: the carrier refused parcel 7"
	// level=ERROR msg="not sent" error="shipping.Send: INTERNAL: *errors.errorString"
}

func ExampleTextf() {
	deadlock := fault.New(fault.DBDeadlock, "postgres.Exec", errors.New("of a customer's rows"))
	err := fault.Textf("importing %d products: %w", 12, deadlock)

	fmt.Println(fault.Reason(err))
	// Output: importing 12 products: postgres.Exec: DB_DEADLOCK
}
