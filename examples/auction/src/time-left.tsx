import { useEffect, useState } from 'react'
import { serverTime } from './gateway'

const TICK_MS = 200
const ROUND_TRIPS = 3
const ENDING_S = 10

/** The difference between the clock of the server and this one: the quickest of some round trips knows it best. */
const offset = (async () => {
  let best = { offsetMs: 0, errorMs: Number.POSITIVE_INFINITY }
  for (let trip = 0; trip < ROUND_TRIPS; trip++) {
    const time = await serverTime().catch(() => best)
    if (time.errorMs < best.errorMs) best = time
  }
  return best.offsetMs
})()

/** The time until an item closes, by the clock of the server. */
export function TimeLeft({ endsUs }: { readonly endsUs: number }) {
  const [leftMs, setLeftMs] = useState<number>()
  useEffect(() => {
    const timer = setInterval(async () => setLeftMs(endsUs / 1_000 - Date.now() - (await offset)), TICK_MS)
    return () => clearInterval(timer)
  }, [endsUs])
  if (leftMs === undefined) return <p className="left">…</p>
  const seconds = Math.max(0, Math.ceil(leftMs / 1_000))
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
  return (
    <p className={seconds <= ENDING_S ? 'left ending' : 'left'} role="timer">
      <b>{clock}</b> left
    </p>
  )
}
