import { type FormEvent, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { setup } from 'webmq-client'
import { useMessages, usePresence, usePublish, useStatus } from 'webmq-client/react'
import './topics'
import { useTyping } from './typing'

setup({ url: '/ws' })

const me = new URLSearchParams(location.search).get('name') ?? `guest ${Math.floor(Math.random() * 1_000)}`

function Chat({ room }: { readonly room: string }) {
  const { messages, isStale, hasOlder, loadOlder } = useMessages(`chat.${room}.message`, { limit: 10 })
  const { members } = usePresence(`chat.${room}`, { name: me })
  const publish = usePublish(`chat.${room}.message`, { optimistic: true })
  const [typing, type] = useTyping(room, me)
  const lost = useStatus((status) => status.lost)
  function send(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const { text } = Object.fromEntries(new FormData(event.currentTarget))
    event.currentTarget.reset()
    void publish({ from: me, text: String(text), atMs: Date.now() })
  }

  return (
    <div className="card">
      <p>Here: {members.map(({ data }) => data?.name).join(', ')}</p>
      {lost && <p role="alert">No connection. Messages are sent later.</p>}
      {hasOlder && (
        <button type="button" onClick={loadOlder}>
          Older
        </button>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it only when it has the focus */}
      <div role="log" aria-label="Messages" tabIndex={0}>
        {messages.length === 0 && !isStale && <p className="empty">Nobody has written yet. Say hello.</p>}
        <ol className={isStale ? 'stale' : ''}>
          {messages.map(({ payload, position, sending }) => (
            <li key={position ?? sending?.id} className={sending?.state}>
              <time>{new Date(payload.atMs).toLocaleTimeString([], { timeStyle: 'short' })}</time>
              <span>
                <b>{payload.from}:</b> {payload.text}
              </span>
              {sending?.state === 'failed' && (
                <button type="button" onClick={sending.retry}>
                  Again
                </button>
              )}
            </li>
          ))}
        </ol>
      </div>
      <form onSubmit={send}>
        <input name="text" aria-label="Message" placeholder="Hello" autoComplete="off" onInput={type} required />
        <button type="submit">Send</button>
      </form>
      <output>{typing && `${typing} is typing`}</output>
    </div>
  )
}

createRoot(document.querySelector('main') as HTMLElement).render(
  <StrictMode>
    <Chat room="lobby" />
  </StrictMode>,
)
