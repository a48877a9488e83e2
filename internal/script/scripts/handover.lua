-- A hand-over: the holder of a mutex leaves, and others wait. It is the most
-- frequent use of a queue, so it has a fast path. Invariant: the fast path
-- leaves the state that queue.lua and advance.lua would leave. The slow path
-- takes all exceptions: a young marker, a lease that has ended, votes to be passed
-- on, keys of another type or size, an expiry to be moved.
if plain == id and not K[6] then
  local F, unvoted, soon, late, keys = string.match(state, '^Q(%d+ %x+) 1 1 %d+ %d+ 1 ([1-9]%d*) %d+ (%d+) (%d+) (%d+) 0$')
  local inc, born = string.match(call('GETRANGE', K[5], '0', '1023'), '^(%d+) (%d+) ')
  local clock = call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  if F and inc and born + guard <= now and soon + 0 > now and late + 0 <= now + keep and late + keep <= keys + 0
    and try('ZCARD', K[3]) == unvoted + 1 and try('HLEN', K[4]) == unvoted + 1 then
    local first, head = unpack(call('ZRANGE', K[3], '0', '1'))
    local t, x, f, o = string.match(call('HGET', K[4], head) or '', '^(%d+) 1 (%d+) (%d) (%S*)')
    if first == plain and t then
      call('ZREM', K[3], plain)
      call('HDEL', K[4], plain)
      call('SET', K[1], head, 'PX', math.max(1, x - now))
      try('PUBLISH', o, 'v ' .. now .. ' ' .. inc .. ' ' .. head .. ' ' .. t .. (unvoted == '1' and ' 0 0 0' or ' 1 0 0'))
      local votes = ' 1 1 ' .. string.format('%.0f', tonumber(string.sub(head, 1, 13), 16)) .. ' ' .. t .. ' 1 '
      state = 'Q' .. F .. votes .. unvoted - 1 .. ' ' .. f .. ' ' .. soon .. ' ' .. late .. ' ' .. keys .. ' 0'
      call('SET', K[2], state, 'PX', keys - now)
      return 1
    end
  end
end
