-- many: joins, beats and leaves of several names in one request, where that is
-- as good as one after the other: each finds its name as a claim finds it that
-- is alone. Which does not is answered 0, nothing of it has been done, and it
-- is sent again by itself. The others are answered 1: a claim has its ticket,
-- and is first. Beats and leaves are carried out also at maxmemory: see
-- full.lua. Here a DEL or a PEXPIRE is the write that needs no memory, unless a
-- join has written before.
--
-- KEYS  1 marker, and of each its redlock key and its state
-- ARGV  1 guard  2 ttl  3 how long the state is kept  4 what it ends with, after the expiry; and of
--       each what it is ("J", "B" and "L" of a name with a redlock key, "j", "b" and "l" of one
--       without), id; of a join its ticket; of a join and a beat what the state begins with, before
--       the expiry, when the claim is alone and has the highest ticket
local K, A, call, try, match, sub = KEYS, ARGV, redis.call, redis.pcall, string.match, string.sub
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local guard, ttl, kept = A[1], A[2], A[3]
local marker = try('GETRANGE', K[1], '0', '1023')
local inc, born = match(marker.err and '' or marker, '^(%d+) (%d+) ')
local votes = inc and born + guard <= now
local top = now * 1000 + guard * 500
local ends, tail = string.format('%.0f', now + ttl), A[4]
local answer, new, gone, a, written = { now * 8 + 1 .. ' ' .. (inc or 0) }, {}, {}, 5, false
for k = 2, #K, 2 do
  local plain, key, what, id = K[k], K[k + 1], A[a], A[a + 1]
  -- An earlier request of the batch may be of the same name: then it has the
  -- redlock key, or its claim has left. A key of another type matches nothing.
  local state, done = new[key] or try('GETRANGE', key, '0', '4095'), ' 0'
  if state.err then state = '?' end
  if what == 'L' or what == 'l' then
    -- As leave.lua does it, but for the redlock keys, which go all at once.
    local fence, only = match(state, '^(S%d+ (%x+))%+')
    if only == id then
      local ours = what == 'L' and (new[key] or try('GETRANGE', plain, '0', '32') == id)
      if written then
        if ours then gone[#gone + 1] = plain end
      elseif ours then
        call('DEL', plain)
      else
        call('PEXPIRE', key, kept)
      end
      call('SET', key, fence, 'PX', kept)
      new[key], done, written = fence, ' 1', true
    end
    a = a + 2
  elseif what == 'B' or what == 'b' then
    -- As beat.lua does it for a claim that has the vote and, where there is
    -- one, the redlock key.
    local head = A[a + 2]
    if votes and sub(state, 1, #head) == head and match(state, '^%d+', #head + 1) + 0 > now
      and (what == 'b' or new[key] or try('GETRANGE', plain, '0', '32') == id) then
      if what == 'B' then
        if call('PEXPIRE', plain, ttl) == 0 then call('SET', plain, id, 'PX', ttl) end
      elseif not written then
        call('PEXPIRE', key, kept)
      end
      state = head .. ends .. tail
      call('SET', key, state, 'PX', kept)
      new[key], done, written = state, ' 1', true
    end
    a = a + 3
  else
    -- As enter.lua does it with a ticket that is above the fence.
    local fence = match(state, '^S(%d+) %x+$') or state == '' and 0
    local ticket = A[a + 2] + 0
    if votes and fence and ticket <= top and ticket - fence > 0 then
      if new[key] and gone[1] then
        call('DEL', unpack(gone))
        gone = {}
      end
      if what == 'j' or call('SET', plain, id, 'PX', ttl, 'NX') then
        state = A[a + 3] .. ends .. tail
        call('SET', key, state, 'PX', kept)
        new[key], done, written = state, ' 1', true
      end
    end
    a = a + 4
  end
  answer[#answer + 1] = done
end
if gone[1] then call('DEL', unpack(gone)) end
return table.concat(answer)
