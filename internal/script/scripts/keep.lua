-- keep gives the claim its lease again, and the classic key if it heads a
-- mutex's queue; where another client has taken that, the vote is gone.
local x = now + ttl
local expiry = x .. ''
if x < tonumber(soon) then soon = expiry end
if x > tonumber(late) then late = expiry end
changed, mine = true, t .. ' ' .. w .. ' ' .. expiry .. ' ' .. f .. ' ' .. o
call('HSET', K[4], id, mine)
if tonumber(t) <= tonumber(bound) then
  if C ~= solo then
    mine = nil
  elseif plain and plain ~= id then
    withdraw(id, t, w, f)
  else
    call('SET', K[1], id, 'PX', A[2])
    plain, mine = id, nil
  end
end
