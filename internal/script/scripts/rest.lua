-- rest pushes to holders that a claim has begun to wait. If this request has
-- left work over, it asks one client for another request. That is the client of
-- this request. If its claim has left, it is the first waiter that listens, or
-- the last one. If that client stops too, the next request to the name goes on,
-- and each claim beats.
if called and (unvoted == 0 or recovering > 0) then
  called, changed = false, true
elseif called then
  local hs = call('ZRANGEBYSCORE', K[3], called == '-inf' and called or '(' .. called, bound, 'LIMIT', 0, most + 1)
  local following = hs[most + 1]
  hs[most + 1], called, changed = nil, false, true
  for i, s in ipairs(hs[1] and call('HMGET', K[4], unpack(hs)) or hs) do
    local u, _, _, g, to = match(s or '', pushed)
    if g == '1' then try('PUBLISH', to, 'w ' .. now .. ' ' .. inc .. ' ' .. hs[i] .. ' ' .. u) end
    called = following and u
  end
end
-- Invariant: what is left over is gone on with soon, by some client that lives.
-- Without that waiters behind many dead claims wait for a third of a lease at
-- each portion.
if unvoted > 0 and recovering <= 0 and (swept or called or stale == '1') then
  local asked = call('ZRANGE', K[3], voted, voted + 7)
  table.insert(asked, 1, id)
  asked[#asked + 1] = call('ZRANGE', K[3], -1, -1)[1]
  for _, a in ipairs(asked) do
    local u, _, _, _, to = match(call('HGET', K[4], a) or '', pushed)
    -- Zero listeners: the client is gone, and the next one is asked. An error
    -- (no right to publish) ends the search.
    if u and try('PUBLISH', to, 'a ' .. now .. ' ' .. inc .. ' ' .. a .. ' ' .. u) ~= 0 then break end
  end
end
