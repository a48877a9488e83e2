-- leave: the claim is gone. The only request that a recovering node obeys: to
-- take a claim away is safe at any time, to vote for the next one is not.
--@ open
if fence and not (live and cid ~= id and cf + 0 < 2 and recovering <= 0) then
  -- The classic key is looked at even when the claim is unknown: the two may have been lost apart.
  if classic then
    local plain = try('GET', K[1])
    if plain and plain.err then return plain end
    if plain == id then call('DEL', K[1]) end
  end
  if cid == id then call('SET', K[2], 'S' .. fence .. ' ' .. fenceOf, 'PX', ttl + A[4]) end
  return { at + 1, tonumber(inc), tonumber(fence), 0 }
end
--@ queue

local c = get(id)
if c then drop(c) end
if classic then freePlain(id) end
if recovering <= 0 then advance() end
save()
return { at + 1, tonumber(inc), F, 0 }
