-- leave: the claim is gone. The only request that a recovering node obeys: to
-- take a claim away is safe at any time, to vote for the next one is not. It is
-- answered by 1.
--
-- Nobody else is here, and neither the time nor the marker matters: the state
-- begins like that of one claim in open.lua, and that is ours.
local state, plain = unpack(redis.call('MGET', KEYS[2], KEYS[1]))
local fence, only = string.match(state or '', '^(S%d+ %x+) %d+ (%x+) ')
if only == ARGV[1] then
  if plain == only and ARGV[5] == '1' and not KEYS[6] then redis.call('DEL', KEYS[1]) end
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[4])
  return { 1 }
end
-- A hand-over: the holder of a mutex leaves, and the next one waits.
if plain == ARGV[1] and not KEYS[6] then
  local K, A, call, match = KEYS, ARGV, redis.call, string.match
  local F, unvoted, soon, late, keys = match(state or '', '^Q(%d+ %x+) 1 1 %d+ %d+ 1 (%d+) %d+ (%d+) (%d+) (%d+) 0$')
  local inc, born = match(call('MGET', K[5])[1] or '', '^(%d+) (%d+)')
  local clock = call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  if F and inc and born + A[3] <= now and soon + 0 > now and late + 0 <= now + A[4] and late + A[4] <= keys + 0
    and redis.pcall('ZCARD', K[3]) == unvoted + 1 and redis.pcall('HLEN', K[4]) == unvoted + 1 then
    local two = call('ZRANGE', K[3], '0', '1')
    local t, x, f, o = match(two[2] and call('HGET', K[4], two[2]) or '', '^(%d+) 1 (%d+) (%d) (.*)$')
    if two[1] == plain and t then
      call('ZREM', K[3], plain)
      call('HDEL', K[4], plain)
      call('SET', K[1], two[2], 'PX', x - now)
      redis.pcall('PUBLISH', o, 'v ' .. now .. ' ' .. inc .. ' ' .. two[2] .. ' ' .. t .. (unvoted == '1' and ' 0 0 0' or ' 1 0 0'))
      call('SET', K[2], 'Q' .. F .. ' 1 1 ' .. string.format('%.0f', tonumber(string.sub(two[2], 1, 13), 16)) .. ' ' .. t .. ' 1 ' .. unvoted - 1
        .. ' ' .. f .. ' ' .. soon .. ' ' .. late .. ' ' .. keys .. ' 0', 'PX', keys - now)
      return { 1 }
    end
  end
end
--@ open
if fence and not (live and cf + 0 < 2 and recovering <= 0) then
  -- The classic key is looked at even when the claim is unknown: the two may have been lost apart.
  if classic and plain == id then call('DEL', K[1]) end
  return { 1 }
end
--@ queue
--@ advance

local t, w, _, f = match(call('HGET', K[4], id) or '', claim)
-- The classic key goes, unless the next one takes it.
local key = plain == id and (classic or t and C == solo)
if key then plain = false end
if t then
  changed, stale = true, '1'
  if t - bound <= 0 then
--@ withdraw
  end
  unvoted = unvoted - 1
  call('ZREM', K[3], id)
  call('HDEL', K[4], id)
  if voted + unvoted == 0 then keys = '0' end
end
--@ advance
if key and not plain then call('DEL', K[1]) end
--@ save
return { 1 }
