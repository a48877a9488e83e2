-- keep gives the claim its lease again, and the redlock key if it heads a
-- mutex's queue. Where another client has taken that key, the claim loses its
-- vote.
local x = now + ttl
local expiry = x .. ''
if x < soon + 0 then soon = expiry end
if x > late + 0 then late = expiry end
-- soon and late bound all leases. If soon were later than a lease, a dead claim
-- would keep its place.
changed, mine = true, t .. ' ' .. w .. ' ' .. expiry .. ' ' .. f .. ' ' .. o
call('HSET', K[4], id, mine)
if t - bound <= 0 then
  if C ~= solo then
    mine = nil
  elseif plain and plain ~= id then
    voted, unvoted, sum, digest, bound, notify = 0, unvoted + 1, '0', '0', '0', '0'
  else
    call('SET', K[1], id, 'PX', px)
    plain, mine = id, nil
  end
end
