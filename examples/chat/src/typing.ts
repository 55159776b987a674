import { useEffect, useState } from 'react'
import { usePublish, useTopic } from 'webmq-client/react'

const SHOWN_MS = 3_000
const PAUSE_MS = 1_000

/** Who is typing in a room, and a function that says that this page is. */
export function useTyping(room: string, me: string): [from: string | undefined, type: () => void] {
  const [from, setFrom] = useState<{ readonly name: string }>()
  const [lastMs, setLastMs] = useState(0)
  const publish = usePublish(`chat.${room}.typing`, { ephemeral: true, whenOffline: 'drop', ack: 'none', echo: false })
  useTopic(`chat.${room}.typing`, ({ from }) => setFrom({ name: from }))
  useTopic(`chat.${room}.message`, () => setFrom(undefined))
  useEffect(() => {
    if (!from) return
    const timer = setTimeout(() => setFrom(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [from])

  const type = () => {
    if (Date.now() - lastMs < PAUSE_MS) return
    setLastMs(Date.now())
    void publish({ from: me })
  }
  return [from?.name, type]
}
