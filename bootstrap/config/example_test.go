package config_test

import (
	"fmt"

	"caskeleton.dev/bootstrap/config"
)

func ExampleLoad() {
	c, err := config.Load(config.Source{Environ: []string{"APP_DB_MAX_CONNS=20", "DATABASE_URL=postgres://app:secret@db/orders"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.DB.MaxConns, c.DB.LockTimeout, c.DB.URL)
	// Output: 20 3s [hidden]
}

func ExampleProblems() {
	_, err := config.Load(config.Source{Environ: []string{"APP_DB_MAX_CONN=20", "APP_DB_IDLE_TIME=90"}})
	fmt.Println(err)
	// Output:
	// the configuration has 2 problems
	//   APP_DB_MAX_CONN, environment: is not a variable that is known
	//     fix: did you mean APP_DB_MAX_CONNS?
	//   APP_DB_IDLE_TIME (db.idle_time) = "90", environment: has no unit
	//     fix: write 90s for seconds, 90ms for milliseconds or 90m for minutes
}
