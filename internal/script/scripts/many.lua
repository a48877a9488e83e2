-- many: joins, beats and leaves of several names in one request, where that is as
-- good as one after the other: each finds its name as a claim finds it that is alone.
-- Which does not is answered 0, nothing of it has been done, and it is sent
-- again by itself. The others are answered 1: a claim has its ticket, and is first.
--
-- KEYS  1 marker, and of each its classic key and its state
-- ARGV  1 guard, and of each what it is ("J", "B" and "L" of a name with a classic key, "j", "b"
--       and "l" of one without), id, how long the state is kept; of a join or a beat ttl and
--       ticket; of a join the state: what it begins with, before the expiry, and what it ends with
local K, A, call, match = KEYS, ARGV, redis.call, string.match
local clock, had = call('TIME'), call('MGET', unpack(KEYS))
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local inc, born = match(had[1] or '', '^(%d+) (%d+)')
local votes = inc and born + A[1] <= now
local answer, new, a = { now * 8 + 1, tonumber(inc or 0) }, {}, 2
for k = 2, #K, 2 do
  local plain, key, what, id, kept = K[k], K[k + 1], A[a], A[a + 1], A[a + 2]
  -- An earlier one may have been of the same name.
  local state, done = new[key] or had[k + 1], 0
  if what == 'L' or what == 'l' then
    a = a + 3
    -- As leave.lua does it.
    local fence, only = match(state or '', '^(S%d+ %x+) %d+ (%x+) ')
    if only == id then
      if what == 'L' and (new[plain] or had[k]) == id then call('DEL', plain) end
      call('SET', key, fence, 'PX', kept)
      new[key], done = fence, 1
    end
  elseif what == 'B' or what == 'b' then
    local ttl = A[a + 3]
    -- As beat.lua does it for who has the vote and, where there is one, the classic key.
    local head, only, T, x, f, o = match(state or '', '^(S%d+ %x+ %d+ (%x+) (%d+) %d+) (%d+) (%d) (.*)$')
    if votes and only == id and T == A[a + 4] and x + 0 > now and (what == 'b' or (new[plain] or had[k]) == id) then
      if what == 'B' then call('SET', plain, id, 'PX', ttl) end
      call('SET', key, head .. ' ' .. now + ttl .. ' ' .. f .. ' ' .. o, 'PX', kept)
      done = 1
    end
    a = a + 5
  else
    local ttl, T = A[a + 3], A[a + 4]
    -- As enter.lua does it with a ticket that is above the fence. A state that MGET
    -- does not see may be of another type.
    local fence = state and match(state, '^S(%d+) %x+$') or not state and call('TYPE', key).ok == 'none' and 0
    if votes and fence and T + 0 > fence + 0 and (what == 'j' or call('SET', plain, id, 'PX', ttl, 'NX')) then
      state = A[a + 5] .. now + ttl .. A[a + 6]
      call('SET', key, state, 'PX', kept)
      new[key], new[plain], done = state, id, 1
    end
    a = a + 7
  end
  answer[#answer + 1] = done
end
return answer
