-- save: of a queue, expiries are moved in steps of a quarter of the retention,
-- not at each request. The fence outlives the last claim by the retention in
-- any case: a later claim must not get a ticket below one that was held. An
-- empty queue is a fence and its claim, as before the first claim.
if changed and voted + unvoted == 0 then
  call('SET', K[2], 'R' .. F .. ' ' .. Fo, 'PX', keep)
elseif changed then
  local rest
  if late + keep > keys + 0 then
    keys = math.floor(late + keep * 1.25)
    rest = math.max(1, keys - now)
    call('PEXPIRE', K[3], rest)
    call('PEXPIRE', K[4], rest)
  end
  state = 'Q' .. F .. ' ' .. Fo .. ' ' .. C .. ' ' .. sum .. ' ' .. digest .. ' ' .. bound .. ' ' .. voted .. ' ' .. unvoted .. ' ' .. notify
    .. ' ' .. soon .. ' ' .. late .. ' ' .. keys .. ' ' .. stale
  if swept or called then state = state .. ' ' .. (swept or '0') .. ' ' .. (called or '0') end
  call('SET', K[2], state, 'PX', rest or math.max(1, keys - now))
end
