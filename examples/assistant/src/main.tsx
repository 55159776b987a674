import { type FormEvent, StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { setup, WebMQError } from 'webmq-client'
import { request } from 'webmq-client/parts'
import { useMessages, useStatus, useStream } from 'webmq-client/react'

setup({ url: '/ws' })

function Assistant({ room }: { readonly room: string }) {
  const { messages, isStale } = useMessages(`assistant.${room}.turn`, { limit: 20 })
  const { id, status, text, meta, error, stop } = useStream(`assistant.${room}.answer`)
  const { lost } = useStatus()
  const [refusal, setRefusal] = useState('')
  const isBusy = status === 'active' && !messages.some(({ payload }) => payload.stream === id)

  async function ask(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    const { question } = Object.fromEntries(new FormData(form))
    try {
      await request(`assistant.${room}.ask`, { question: String(question) })
      form.reset()
      setRefusal('')
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      setRefusal(error.message)
    }
  }

  return (
    <div className="card">
      {lost && <p role="alert">No connection. The answer goes on when it is back.</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it only when it has the focus */}
      <div role="log" aria-label="Conversation" aria-busy={isBusy} tabIndex={0}>
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
      <form onSubmit={ask}>
        <input name="question" aria-label="Question" autoComplete="off" required />
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
