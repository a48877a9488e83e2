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
--       each what its claim is alone with. The first word tells by its length which request it is.
--       With a redlock key:    join "<id>" "<ticket>"    beat "<id>+" HEAD    leave "S<ticket> <id>"
--       without one:           join "j" "<ticket>" HEAD   beat "b" HEAD        leave "l" "S<ticket> <id>"
--       HEAD is "S<ticket> <id>+<capacity> <weight> ", which the state begins with, before the expiry
local K, A, call, try, match, sub, byte = KEYS, ARGV, redis.call, redis.pcall, string.match, string.sub, string.byte
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local guard, ttl, kept = A[1], A[2], A[3]
local marker = try('GETRANGE', K[1], '0', '1023')
local inc, born = match(marker.err and '' or marker, '^(%d+) (%d+) ')
local votes = inc and born + guard <= now
local top = string.format('%.0f', now * 1000 + guard * 500)
local tail = string.format('%.0f', now + ttl) .. A[4]
local undone, gone, going, a, written = {}, {}, {}, 5, false
for k = 2, #K, 2 do
  local plain, key, what = K[k], K[k + 1], A[a]
  -- A key of another type matches nothing.
  local state, done, long = try('GETRANGE', key, '0', '4095'), false, #what
  if state.err then state = '?' end
  if long > 33 or what == 'l' then
    -- As leave.lua does it, but for the redlock keys, which go all at once.
    local fence = what
    if what == 'l' then
      a = a + 1
      fence = A[a]
    end
    if string.find(state, fence .. '+', 1, true) == 1 then
      local ours = what ~= 'l' and try('GETRANGE', plain, '0', '32') == sub(fence, -32)
      if written then
        if ours then gone[#gone + 1], going[plain] = plain, true end
      elseif ours then
        call('DEL', plain)
      else
        call('PEXPIRE', key, kept)
      end
      call('SETRANGE', key, '0', 'R')
      done, written = true, true
    end
    a = a + 1
  elseif long == 33 or what == 'b' then
    -- As beat.lua does it for a claim that has the vote and, where there is
    -- one, the redlock key.
    local head, id = A[a + 1], sub(what, 1, 32)
    if votes and sub(state, 1, #head) == head and match(state, '^%d+', #head + 1) + 0 > now
      and (what == 'b' or try('GETRANGE', plain, '0', '32') == id) then
      if what ~= 'b' then
        if call('PEXPIRE', plain, ttl) == 0 then call('SET', plain, id, 'PX', ttl) end
      elseif not written then
        call('PEXPIRE', key, kept)
      end
      call('SET', key, head .. tail, 'PX', kept)
      done, written = true, true
    end
    a = a + 2
  else
    -- As enter.lua does it at its beginning.
    local ticket = A[a + 1]
    if votes and ticket ~= '0' and (state == '' or state < 'R' .. ticket and state > 'R' and byte(state, #ticket + 2) == 32)
      and (#ticket == #top and ticket <= top or #ticket < #top) then
      if going[plain] then -- an earlier leave of the batch is of the same name
        call('DEL', unpack(gone))
        gone, going = {}, {}
      end
      if what == 'j' or call('SET', plain, what, 'PX', ttl, 'NX') then
        call('SET', key, what == 'j' and A[a + 2] .. tail or 'S' .. ticket .. ' ' .. what .. '+1 1 ' .. tail, 'PX', kept)
        done, written = true, true
      end
    end
    a = a + (what == 'j' and 3 or 2)
  end
  if not done then undone[#undone + 1] = k end
end
if gone[1] then call('DEL', unpack(gone)) end
-- Most are done, so the others are what is put in.
local answer = string.rep(' 1', (#K - 1) / 2)
for _, k in ipairs(undone) do answer = sub(answer, 1, k - 1) .. '0' .. sub(answer, k + 1) end
return now * 8 + 1 .. ' ' .. (inc or 0) .. answer
