-- bootstrap: the operator declares that this node has forgotten nothing. A
-- marker born at the beginning of time is older than any guard.
--
-- KEYS  1 marker   ARGV  1 random id  2 run id  3 guard and retention
local marker = redis.pcall('GET', KEYS[1])
if not marker and string.sub(KEYS[1], -7) ~= ':marker' or marker and marker.err and redis.call('TYPE', KEYS[1]).ok == 'zset' then
  return redis.error_reply('OTHERSET this node is not of that set')
end
if marker and marker.err then return marker end
local inc, guard, kept = string.match(marker or '', '^(%d+) %d+ %S+ (%d+) (%d+)')
local g, r = string.match(ARGV[3], '^(%d+) (%d+)$')
if not inc then
  inc = string.format('%.0f', tonumber(string.sub(ARGV[1], 1, 13), 16) % 4503599627370495 + 1)
else
  if guard - g > 0 then g = guard end
  if kept - r > 0 then r = kept end
end
-- The run id goes with it, or the next client to connect would report this very run as a loss.
redis.call('SET', KEYS[1], inc .. ' 0 ' .. ARGV[2] .. ' ' .. g .. ' ' .. r .. ' w')
return { tonumber(inc), tonumber(redis.call('TIME')[1]) * 1000 }
