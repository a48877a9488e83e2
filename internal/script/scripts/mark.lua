-- mark: a client has connected, and tells which run of the server it sees. A
-- run that the marker does not name may have come back with an old memory,
-- whatever its appendfsync is: the first client to say so gives the node a new
-- incarnation, it is not caught up any more, and its guard time begins now: the
-- memory may be another node's, whose replica this one was until a moment ago.
-- So it is when the clock has jumped: leases have ended early here, and a
-- marker of the future says that it was set back. A server that has had no
-- replica for an hour forgets the master that it replicated: its run is "r" and
-- no longer "r+former". It has lost nothing then.
--
-- KEYS  1 marker   ARGV  1 random id  2 run id  3 the incarnation in which the clock has jumped, or empty
-- The marker: "<incarnation> <born> <run id> <guard>[ w]", w: the node is caught up (record.lua), l: see set.lua
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local inc, born, run, guard = string.match(redis.call('GETRANGE', KEYS[1], '0', '1023'), '^(%d+) (%d+) (%S+) (%d+)')
if not inc then return redis.error_reply('OTHERSET this node is not of that set') end
if string.sub(run .. '+', 1, #ARGV[2] + 1) ~= ARGV[2] .. '+' or ARGV[3] == inc or born + 0 > now then
  inc = string.format('%.0f', tonumber(string.sub(ARGV[1], 1, 13), 16) % 4503599627370495 + 1)
  born = now
  redis.call('PEXPIRE', KEYS[1], 1000) -- at maxmemory, too: see full.lua
  redis.call('SET', KEYS[1], inc .. ' ' .. string.format('%.0f', now) .. ' ' .. ARGV[2] .. ' ' .. guard)
end
return { tonumber(inc), now - born }
