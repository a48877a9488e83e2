-- bootstrap: the operator declares that this node has forgotten nothing. A
-- marker born at the beginning of time is older than any guard.
--
-- KEYS  1 marker   ARGV  1 random id  2 run id
local marker = redis.pcall('GET', KEYS[1])
if marker and marker.err then return marker end
local inc = string.match(marker or '', '^(%d+) %d+ ')
if not inc then
  inc = string.format('%.0f', tonumber(string.sub(ARGV[1], 1, 13), 16) % 4503599627370495 + 1)
end
-- The run id goes with it, or the next client to connect would report this very run as a loss.
redis.call('SET', KEYS[1], inc .. ' 0 ' .. ARGV[2] .. ' w')
return { tonumber(inc), tonumber(redis.call('TIME')[1]) * 1000 }
