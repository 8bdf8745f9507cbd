package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// A configuration is checked as a whole, so that one start tells everything.
func ExampleConfig_Validate() {
	err := postgres.Config{
		DSN:         "postgres://app:secret@db:fivefour/orders",
		MaxLifetime: 10 * time.Second,
		ExecMode:    "prepared",
	}.Validate()
	fmt.Println(err)
	// Output:
	// postgres: the configuration is not valid:
	//   DSN: cannot be parsed; write it as postgres://user:password@host:5432/database?sslmode=verify-full, with special characters percent-encoded (it is not shown here, since it may hold the password)
	//   MaxLifetime = 10s: is less than 30s; set it to 30s or more, or leave it out for 30m
	//   ExecMode = "prepared": is not an exec mode; use cache_statement, cache_describe, exec or simple_protocol
}

// What the server said, the value in it above all, does not get into the text of the error.
func ExampleClassifier_Translate() {
	c, err := postgres.NewClassifier()
	if err != nil {
		fmt.Println(err)
		return
	}
	cause := &pgconn.PgError{
		SeverityUnlocalized: "ERROR", Code: "23505", Message: "duplicate key value violates unique constraint", Detail: "Key (email)=(ann@example.com) already exists.",
		SchemaName: "shop", TableName: "customers", ConstraintName: "customers_email_key", Routine: "_bt_check_unique",
	}
	err = c.Translate(context.Background(), "customers.Add", cause)
	fmt.Println(err)
	fmt.Println(errors.Is(err, fault.DBUniqueViolation), fault.StatusOf(err), fault.Retryable(err))
	// Output:
	// customers.Add: DB_UNIQUE_VIOLATION: postgres: SQLSTATE 23505 severity=ERROR schema=shop table=customers constraint=customers_email_key routine=_bt_check_unique
	// true 409 false
}

// A service gives codes to the SQLSTATEs that its own functions raise.
func ExampleNewClassifier() {
	soldOut := fault.NewCode(fault.Spec{Name: "SOLD_OUT", Category: fault.CategoryConflict, Status: 409, Client: "Sold out.", Hint: "Reorder."})
	c, err := postgres.NewClassifier(postgres.Contribution{Name: "orders", States: map[string]fault.Code{"OR001": soldOut}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Classify(&pgconn.PgError{Code: "OR001"}))

	_, err = postgres.NewClassifier(postgres.Contribution{Name: "orders", States: map[string]fault.Code{"23505": soldOut}})
	fmt.Println(err)
	// Output:
	// SOLD_OUT true
	// postgres: SQLSTATE 23505 is contributed by "postgres" and by "orders"; keep one
}

// A repository takes the transaction as an argument, and sqlc's generated New takes what Querier returns.
func ExampleQuerier() {
	rename := func(ctx context.Context, t *tx.Tx, id int64, name string) error {
		q, err := postgres.Querier(t)
		if err != nil {
			return err
		}
		_, err = q.Exec(ctx, "update shop.items set name = $1 where id = $2", name, id)
		return err
	}
	fmt.Println(rename(context.Background(), nil, 1, "lamp"))
	// Output: tx: no transaction was given (nil *tx.Tx); pass the one that fn received
}
