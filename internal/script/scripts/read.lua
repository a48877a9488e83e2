-- read: how a request to a name begins. No function is defined before the
-- uncontended case has been dealt with: creating closures would cost as much as
-- the work itself.
--
-- KEYS  1 redlock key  2 state  3 queue (zset, by ticket)  4 claims (hash)  5 marker
--       6 of a semaphore: the record that says how many permits there are since a Resize
-- Each word of a command costs a node as much as ten lines of a script, so a
-- word is left out if it is the usual one.
local K, A, call, try = KEYS, ARGV, redis.call, redis.pcall
-- An error must never strike after a write, so what may be of another type is
-- read first. No script reads more of a key than a text of its own has: any
-- program that may write here could stop the server by a value of 100 MB.
local state, marker, clock = try('GETRANGE', K[2], '0', '4095'), try('GETRANGE', K[5], '0', '1023'), call('TIME')
