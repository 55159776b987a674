import { onBeforeUnmount, reactive, ref } from 'vue'
import { type Codes, type Order, type Told, toldOf } from './messages.js'

/** A row of the event log. */
export interface Row extends Told {
  readonly id: number
  /** Seconds since the code was run. */
  readonly at: string
}

const MAX_ROWS = 200

/** Runs code in a sandbox, and keeps what it tells. */
export function usePlayground() {
  const rows = ref<readonly Row[]>([])
  const states = reactive({ listen: '', publish: '' })
  const isRunning = ref(false)
  const isCut = ref(false)
  let frame: HTMLIFrameElement | undefined
  let startedAtMs = 0
  let count = 0

  function take({ source, data }: MessageEvent): void {
    if (frame === undefined || source !== frame.contentWindow) return
    const told = toldOf(data)
    if (told === undefined) return
    const at = ((performance.now() - startedAtMs) / 1_000).toFixed(1)
    rows.value = [...rows.value, { ...told, id: ++count, at }].slice(-MAX_ROWS)
    if (told.kind === 'state' && told.pane !== 'server') states[told.pane] = told.text
  }

  function send(order: Order): void {
    // It has no origin that could be named.
    frame?.contentWindow?.postMessage(order, '*')
  }

  function stop(): void {
    removeEventListener('message', take)
    frame?.remove()
    frame = undefined
    isRunning.value = isCut.value = false
    Object.assign(states, { listen: '', publish: '' })
  }

  async function run(codes: Codes): Promise<void> {
    stop()
    isRunning.value = true
    rows.value = []
    const { default: page } = await import('virtual:playground-frame')
    if (!isRunning.value) return
    const next = document.createElement('iframe')
    // Without allow-same-origin: whatever the code is, it has none of this site's rights.
    next.setAttribute('sandbox', 'allow-scripts')
    next.hidden = true
    next.title = 'sandbox'
    next.srcdoc = page
    next.onload = () => send({ run: { ...codes } })
    addEventListener('message', take)
    frame = next
    startedAtMs = performance.now()
    document.body.append(next)
  }

  function act(name: 'restart' | 'lose'): void {
    send({ act: name })
  }

  function toggleNetwork(): void {
    isCut.value = !isCut.value
    send({ act: isCut.value ? 'cut' : 'join' })
  }

  onBeforeUnmount(stop)
  return { rows, states, isRunning, isCut, run, stop, act, toggleNetwork }
}
