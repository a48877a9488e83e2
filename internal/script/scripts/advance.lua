-- advance gives the vote to one claim after the other for as long as they fit
-- (no claim weighs nothing). It pushes a message to each, except the claim of
-- this request, which learns it from the answer. A client without the right to
-- publish must not stop half-way: a waiter asks again in time. A claim whose
-- lease has ended is dropped instead. One request gives a bounded number of
-- votes. The rest is for the next request: stale stays set.
if recovering <= 0 and (stale == '1' or C == solo and voted == 0) then
  stale = '0'
  while unvoted > 0 and C - sum > 0 do
    local head, s = id, unvoted == 1 and mine
    if not s then
      head = call('ZRANGE', K[3], voted, voted)[1]
      s = head and call('HGET', K[4], head)
    end
    -- The first claim that does not fit ends it, though a lighter one behind
    -- might fit: else a writer would wait for as long as readers come.
    local t, w, x, f, o = match(s or '', pushed)
    if not t or C - sum < w + 0 then break end
    if votes == 0 then
      stale = '1'
      break
    end
    votes = votes - 1
    if x - now <= 0 then
      -- There is room for it, and its lease has ended.
      if C == solo and plain == head then
        call('DEL', K[1])
        plain = false
      end
      call('ZREM', K[3], head)
      call('HDEL', K[4], head)
      changed, unvoted = true, unvoted - 1
    else
      if C == solo then
        if plain and plain ~= head then break end
        -- The redlock key comes with the vote and ends with the lease, so no
        -- other Redlock client gets in beside a holder.
        call('SET', K[1], head, 'PX', math.max(1, x - now))
        plain = head
      end
      if head == id then
        mine = nil
      else
        try('PUBLISH', o, 'v ' .. now .. ' ' .. inc .. ' ' .. head .. ' ' .. t .. (unvoted > 1 and ' 1 ' or ' 0 ') .. sum .. ' ' .. digest
          .. (limit and ' ' .. limit .. ' ' .. since or ''))
      end
      changed, bound, voted, unvoted, notify = true, t, voted + 1, unvoted - 1, notify + f
      sum = voted == 1 and w or format('%.0f', sum + w)
      digest = format('%.0f', (digest + digestOf(head)) % 4503599627370496)
    end
  end
end
