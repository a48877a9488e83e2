-- caughtup: this node is caught up. It can attest again what is not recorded.
-- In another incarnation it has lost more since, so nothing changes.
--
-- KEYS  1 marker   ARGV  1 incarnation
local marker = redis.pcall('GET', KEYS[1])
if marker and marker.err then
  if redis.call('TYPE', KEYS[1]).ok == 'zset' then return redis.error_reply('OTHERSET this node is not of that set') end
  return marker
end
local inc, rest = string.match(marker or '', '^(%d+)( %d+ %S+ %d+ %d+)')
if inc ~= ARGV[1] then return { 0 } end
redis.call('SET', KEYS[1], inc .. rest .. ' w')
return { 1 }
