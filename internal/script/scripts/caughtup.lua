-- caughtup: this node is caught up. It can attest again what is not recorded.
-- In another incarnation it has lost more since, so nothing changes.
--
-- KEYS  1 marker   ARGV  1 incarnation
local inc, rest = string.match(redis.call('GETRANGE', KEYS[1], '0', '1023'), '^(%d+)( %d+ %S+ %d+)')
if inc ~= ARGV[1] then return { 0 } end
redis.call('SET', KEYS[1], inc .. rest .. ' w')
return { 1 }
