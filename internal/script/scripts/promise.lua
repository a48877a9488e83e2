-- promise: the client of this request has another guard time or retention than
-- the longest that clients have shown to this node. The longest count, for
-- everyone: this client must neither vote before the lease that another one was
-- given has ended, nor drop that lease or the fence for an older one.
local g, r = match(A[3], '^(%d+) (%d+)$')
local head, longest, tail = match(marker, '^(%d+ %d+ %S+ )%d+ (%d+)(.*)$')
if longest - r > 0 then
  keep, r = format('%.0f', A[2] + longest), longest
end
if g - guard > 0 then guard = g end
if guard .. ' ' .. r ~= promised then
  try('ZREM', K[3], '') -- at maxmemory, too: see full.lua
  call('SET', K[5], head .. guard .. ' ' .. r .. tail)
end
