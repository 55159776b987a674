import { type FormEvent, StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { setup, WebMQError } from 'webmq-client'
import { request } from 'webmq-client/parts'
import { useMessages, useStatus, useStream } from 'webmq-client/react'

setup({ url: '/ws' })

const SAMPLE = 'What happens when I reload this page?'

function Assistant({ room }: { readonly room: string }) {
  const { messages, isStale } = useMessages(`assistant.${room}.turn`, { limit: 20 })
  const { id, status, text, meta, error, stop } = useStream(`assistant.${room}.answer`)
  const { lost } = useStatus()
  const [refusal, setRefusal] = useState('')
  const isBusy = status === 'active' && !messages.some(({ payload }) => payload.stream === id)

  async function ask(question: string) {
    try {
      await request(`assistant.${room}.ask`, { question })
      setRefusal('')
      return true
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      setRefusal(error.message)
      return false
    }
  }

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    const { question } = Object.fromEntries(new FormData(form))
    if (await ask(String(question))) form.reset()
  }

  return (
    <div className="card">
      {lost && <p role="alert">No connection. The answer goes on when it is back.</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it only when it has the focus */}
      <div role="log" aria-label="Conversation" aria-busy={isBusy} tabIndex={0}>
        {messages.length === 0 && !isStale && !isBusy && (
          <div className="empty">
            <p>Nothing was asked yet. For example:</p>
            <button type="button" onClick={() => void ask(SAMPLE)}>
              {SAMPLE}
            </button>
          </div>
        )}
        <ol className={isStale ? 'stale' : ''}>
          {messages.map(({ payload, position }) => (
            <li key={position}>
              <b>{payload.question}</b>
              <p>{payload.answer}</p>
              {payload.isStopped && <small>stopped</small>}
            </li>
          ))}
          {isBusy && (
            <li data-active>
              <b>{meta?.question}</b>
              <p>{text}</p>
            </li>
          )}
        </ol>
      </div>
      {(status === 'lost' || status === 'fail') && (
        <p role="alert">The last answer is not complete. {error?.message}</p>
      )}
      {refusal && <p role="alert">{refusal}</p>}
      <form onSubmit={submit}>
        <input name="question" aria-label="Question" placeholder="Your question" autoComplete="off" required />
        {isBusy ? (
          <button type="button" onClick={() => void stop()}>
            Stop
          </button>
        ) : (
          <button type="submit">Ask</button>
        )}
      </form>
    </div>
  )
}

createRoot(document.querySelector('main') as HTMLElement).render(
  <StrictMode>
    <Assistant room="lobby" />
  </StrictMode>,
)
