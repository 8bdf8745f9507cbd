package bootstrap

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/bootstrap/config"
)

func TestTheDevSecretIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var made [8]string
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			secret, err := devSecret(dir)
			made[i] = string(secret)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, secret := range made {
		require.Equal(t, made[0], secret)
	}
	require.GreaterOrEqual(t, len(made[0]), 32)

	info, err := os.Stat(filepath.Join(dir, devSecretFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "temporary files are removed")
}

// Who only looks leaves nothing behind, and finds what the service has made.
func TestFindKeyringMakesNoSecret(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	c := &config.Config{Profile: config.Dev, DataDir: dir}
	_, err := FindKeyring(c)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoDirExists(t, dir)

	made, err := Keyring(c)
	require.NoError(t, err)
	found, err := FindKeyring(c)
	require.NoError(t, err)
	require.Equal(t, made, found)
}

func TestKeyringByProfile(t *testing.T) {
	key := config.NewSecret("0123456789abcdef0123456789abcdef")
	for name, c := range map[string]struct {
		config config.Config
		fails  string
	}{
		"dev makes its own":         {config.Config{Profile: config.Dev}, ""},
		"prod with a key":           {config.Config{Profile: config.Prod, Idempotency: config.Idempotency{Keys: map[string]config.Secret{"1": key}}}, ""},
		"prod refuses without":      {config.Config{Profile: config.Prod}, "APP_IDEMPOTENCY_KEY_<version> is not set"},
		"a short key is refused":    {config.Config{Profile: config.Prod, Idempotency: config.Idempotency{Keys: map[string]config.Secret{"1": config.NewSecret("short")}}}, "5 bytes"},
		"several keys":              {config.Config{Profile: config.Prod, Idempotency: config.Idempotency{Keys: map[string]config.Secret{"1": key, "2": key}}}, ""},
		"a short one among several": {config.Config{Profile: config.Prod, Idempotency: config.Idempotency{Keys: map[string]config.Secret{"1": config.NewSecret("short"), "2": key}}}, "5 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.DataDir = t.TempDir()
			_, err := Keyring(&c.config)
			if c.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.fails)
		})
	}
}
