-- mark: a client has connected, and tells which run of the server it sees.
-- Where the run is to be judged (lost = 1), a new one may have come back with
-- an old memory though the marker survived, whatever its appendfsync is: the
-- first one to say so gives the node a new incarnation, it is not caught up any
-- more, and its guard time begins now: the memory may be another node's, whose
-- replica this one was until a moment ago. So it is when the clock has jumped:
-- leases have ended early here, and a marker of the future says that it was set
-- back. The marker keeps the longest guard time and the longest retention that
-- any client has shown: a client with shorter ones must not cut short what
-- another was promised.
--
-- KEYS  1 marker   ARGV  1 random id  2 run id  3 lost, or the incarnation in which the clock has jumped  4 milliseconds since the run began, or up to a second less
--       5 guard and retention
-- The marker: "<incarnation> <born> <run id, or - when not known> <guard> <retention>[ w]", w: the node is caught up (record.lua), l: see set.lua
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local marker = redis.pcall('GET', KEYS[1])
-- The marker of a recorded set is made with the record, and a sorted set is at
-- the key of the others then: see set.lua.
if not marker and string.sub(KEYS[1], -7) ~= ':marker' or marker and marker.err and redis.call('TYPE', KEYS[1]).ok == 'zset' then
  return redis.error_reply('OTHERSET this node is not of that set')
end
if marker and marker.err then return marker end
local inc, born, run, guard, kept, caughtUp = string.match(marker or '', '^(%d+) (%d+) (%S+) (%d+) (%d+)(.*)$')
local g, r = string.match(ARGV[5], '^(%d+) (%d+)$')
if inc and guard - g > 0 then g = guard end
if inc and kept - r > 0 then r = kept end
if inc and run == '-' and born + 0 <= now and born + 0 >= now - ARGV[4] - 1000 then
  -- A script has made the marker in this very run, which it cannot know.
  run = ARGV[2]
elseif not inc or (run ~= ARGV[2] and ARGV[3] == '1') or ARGV[3] == inc or born + 0 > now then
  inc = string.format('%.0f', tonumber(string.sub(ARGV[1], 1, 13), 16) % 4503599627370495 + 1)
  born, run, caughtUp = string.format('%.0f', now), ARGV[2], ''
end
local new = inc .. ' ' .. born .. ' ' .. run .. ' ' .. g .. ' ' .. r .. caughtUp
if new ~= marker then
  redis.call('ZREM', KEYS[1] .. ':heal', '') -- at maxmemory, too: see full.lua
  redis.call('SET', KEYS[1], new)
end
return { tonumber(inc), now - born }
