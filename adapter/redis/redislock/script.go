package redislock

import "github.com/redis/rueidis"

// Each script is about one key. They know where a value has its token, the first 32 bytes, and its mark, the byte after.
const (
	// takeText sets the key if nobody has it, and else tells who does. SETRANGE keeps the time to live.
	takeText = `local v = redis.call('GET', KEYS[1])
if not v then
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
	return false
end
local mark = string.sub(v, 33, 33)
if ARGV[3] == '1' and mark == '.' then
	redis.call('SETRANGE', KEYS[1], 32, '!')
	mark = '!'
end
return {mark, redis.call('PTTL', KEYS[1])}`

	lookText = `local v = redis.call('GET', KEYS[1])
if not v then return false end
return {string.sub(v, 33, 33), redis.call('PTTL', KEYS[1])}`

	renewText = `local v = redis.call('GET', KEYS[1])
if not v or string.find(v, ARGV[1], 1, true) ~= 1 then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`

	// releaseText publishes last, and swallows what goes wrong with it: the key is free by then, and a hint may be missed.
	releaseText = `local v = redis.call('GET', KEYS[1])
if not v or string.find(v, ARGV[1], 1, true) ~= 1 then return 0 end
redis.call('DEL', KEYS[1])
if string.sub(v, 33, 33) == '!' then redis.pcall('PUBLISH', ARGV[2], KEYS[1]) end
return 1`
)

var (
	scriptTexts = [...]string{takeText, lookText, renewText, releaseText}

	take    = rueidis.NewLuaScript(takeText)
	look    = rueidis.NewLuaScript(lookText)
	renew   = rueidis.NewLuaScript(renewText)
	release = rueidis.NewLuaScript(releaseText)
)
