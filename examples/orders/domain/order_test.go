package domain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/fault"
)

var prices = map[string]int64{"tea": 450, "mug": 1200}

func TestPlaceAddsUpThePrices(t *testing.T) {
	o, err := domain.Place("id", domain.Draft{CustomerID: "ada", Items: []domain.Item{{"tea", 3}, {"mug", 2}}}, prices)
	require.NoError(t, err)
	require.Equal(t, int64(3*450+2*1200), o.TotalCents)
	require.Equal(t, domain.Placed, o.Status)
	require.Equal(t, int64(1), o.Version)
}

func TestEachRuleNamesItsField(t *testing.T) {
	tea := []domain.Item{{"tea", 1}}
	for name, c := range map[string]struct {
		draft domain.Draft
		paths []string
	}{
		"no customer":             {domain.Draft{Items: tea}, []string{"customer_id"}},
		"long customer":           {domain.Draft{CustomerID: strings.Repeat("ä", 65), Items: tea}, []string{"customer_id"}},
		"control character":       {domain.Draft{CustomerID: "a\x1bb", Items: tea}, []string{"customer_id"}},
		"surrounding space":       {domain.Draft{CustomerID: " ada", Items: tea}, []string{"customer_id"}},
		"no items":                {domain.Draft{CustomerID: "ada"}, []string{"items"}},
		"too many items":          {domain.Draft{CustomerID: "ada", Items: manyTeas(101)}, []string{"items"}},
		"quantity 0":              {domain.Draft{CustomerID: "ada", Items: []domain.Item{{"tea", 0}}}, []string{"items[0].quantity"}},
		"negative quantity":       {domain.Draft{CustomerID: "ada", Items: []domain.Item{{"tea", 1}, {"tea", -1}}}, []string{"items[1].quantity"}},
		"quantity over the limit": {domain.Draft{CustomerID: "ada", Items: []domain.Item{{"tea", 1001}}}, []string{"items[0].quantity"}},
		"unknown product":         {domain.Draft{CustomerID: "ada", Items: []domain.Item{{"tea", 1}, {"gold", 1}}}, []string{"items[1].sku"}},
		"all at once":             {domain.Draft{Items: []domain.Item{{"", 0}}}, []string{"customer_id", "items[0].sku", "items[0].quantity"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := domain.Place("id", c.draft, prices)
			require.ErrorIs(t, err, fault.RequestInvalid)
			var paths []string
			for _, f := range fault.FieldsOf(err) {
				paths = append(paths, f.Path)
				require.NotEmpty(t, f.Fix)
			}
			require.Equal(t, c.paths, paths)
		})
	}
}

func TestTheLimitsThemselvesAreFine(t *testing.T) {
	_, err := domain.Place("id", domain.Draft{CustomerID: strings.Repeat("ä", 64), Items: manyTeas(100)}, prices)
	require.NoError(t, err)
	_, err = domain.Place("id", domain.Draft{CustomerID: "a", Items: []domain.Item{{"tea", 1000}}}, prices)
	require.NoError(t, err)
}

func manyTeas(n int) []domain.Item {
	items := make([]domain.Item, n)
	for i := range items {
		items[i] = domain.Item{SKU: "tea", Quantity: 1}
	}
	return items
}

func TestCancelIsAChangeOnce(t *testing.T) {
	o, err := domain.Place("id", domain.Draft{CustomerID: "ada", Items: manyTeas(1)}, prices)
	require.NoError(t, err)
	cancelled, changed := o.Cancel()
	require.True(t, changed)
	require.Equal(t, domain.Cancelled, cancelled.Status)
	require.Equal(t, int64(2), cancelled.Version)
	again, changed := cancelled.Cancel()
	require.False(t, changed)
	require.Equal(t, cancelled, again)
}

func TestOnlyAPlacedOrderEnds(t *testing.T) {
	placed := domain.Order{ID: "id", Status: domain.Placed, Version: 1}
	cancelled, changed := placed.Cancel()
	require.True(t, changed)
	require.Equal(t, domain.Order{ID: "id", Status: domain.Cancelled, Version: 2}, cancelled)
	expired, changed := placed.Expire()
	require.True(t, changed)
	require.Equal(t, domain.Order{ID: "id", Status: domain.Expired, Version: 2}, expired)
	for _, o := range []domain.Order{cancelled, expired} {
		after, changed := o.Cancel()
		require.False(t, changed)
		require.Equal(t, o, after)
		after, changed = o.Expire()
		require.False(t, changed)
		require.Equal(t, o, after)
	}
	require.True(t, placed.Shippable())
	require.True(t, cancelled.Shippable())
	require.False(t, expired.Shippable())
}
