-- bootstrap: the operator declares that this node has forgotten nothing. A
-- marker born at the beginning of time is older than any guard. To keep the
-- guard time is for a set that is in use: a node that is within it may have
-- forgotten a lease, so it stays as it is.
--
-- KEYS  1 marker   ARGV  1 random id  2 run id  3 guard and retention  4 whose guard time is ended:
--                 0 any, - none, or that of this incarnation
local marker = redis.pcall('GET', KEYS[1])
if not marker and string.sub(KEYS[1], -7) ~= ':marker' or marker and marker.err and redis.call('TYPE', KEYS[1]).ok == 'zset' then
  return redis.error_reply('OTHERSET this node is not of that set')
end
if marker and marker.err then return marker end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local inc, born, run, guard, kept, caughtUp = string.match(marker or '', '^(%d+) (%d+) (%S+) (%d+) (%d+)(.*)$')
local g, r = string.match(ARGV[3], '^(%d+) (%d+)$')
if not inc then
  inc = string.format('%.0f', tonumber(string.sub(ARGV[1], 1, 13), 16) % 4503599627370495 + 1)
  born, run, caughtUp = string.format('%.0f', now), ARGV[2], ''
else
  if guard - g > 0 then g = guard end
  if kept - r > 0 then r = kept end
end
if ARGV[4] == '0' or ARGV[4] == inc or now - born >= g + 0 then
  -- The run id goes with it, or the next client to connect would report this
  -- very run as a loss.
  born, run, caughtUp = '0', ARGV[2], ' w'
end
redis.call('SET', KEYS[1], inc .. ' ' .. born .. ' ' .. run .. ' ' .. g .. ' ' .. r .. caughtUp)
return { tonumber(inc), now - born }
