package main

import (
	"fmt"
	"time"

	"caskeleton.dev/bootstrap"
	"caskeleton.dev/examples/orders/adapter/postgres"
	"caskeleton.dev/examples/orders/app"
	"caskeleton.dev/lock/schedule"
)

// settings are the service's own.
type settings struct {
	expireAfter time.Duration // ORDERS_EXPIRE_AFTER: how long an order may wait to be shipped
	expireEvery time.Duration // ORDERS_EXPIRE_EVERY: how often such orders are looked for
}

func readSettings(getenv func(string) string) (settings, error) {
	s := settings{expireAfter: 7 * 24 * time.Hour, expireEvery: time.Minute}
	for name, v := range map[string]*time.Duration{"ORDERS_EXPIRE_AFTER": &s.expireAfter, "ORDERS_EXPIRE_EVERY": &s.expireEvery} {
		text := getenv(name)
		if text == "" {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return settings{}, fmt.Errorf("%s is %q, which is no duration above 0; write one with a unit, as in %v", name, text, *v)
		}
		*v = d
	}
	return s, nil
}

// expireAtMost bounds one run. What it leaves the next one finds, so it is short: after a crash in a run nobody else has a turn for as long.
const expireAtMost = 30 * time.Second

// jobs returns what the service does now and then, once in all its instances.
func (s settings) jobs(a *bootstrap.App) []schedule.Job {
	expire := app.ExpireOrders{Runner: a.Runner, Orders: postgres.Orders{}, Events: a.Outbox, After: s.expireAfter}
	return []schedule.Job{{Name: "orders.expire", When: schedule.Every(s.expireEvery), AtMost: expireAtMost, Run: expire.Do}}
}
