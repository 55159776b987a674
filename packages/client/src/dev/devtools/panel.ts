import type { WebMQClient } from '../../core/client.js'
import type { Gap } from '../../core/events/events.js'
import { STYLE } from './style.js'
import type { Seen, Traffic } from './traffic.js'
import { TROUBLES, type Trouble, type TroubleName } from './trouble.js'

const REFRESH_MS = 500
/** Rows of a list that are shown. */
const MAX_ROWS = 20

/** What a button says, and what it does, as its tooltip. */
const BUTTONS: Readonly<Record<TroubleName, readonly [label: string, title: string]>> = {
  drop: ['Drop', 'The connection ends. The client reconnects and resumes.'],
  silence: ['Go silent', 'Frames are lost in both directions, until the heartbeat finds out. For at most 60 s.'],
  expire: [
    'Expire history',
    'The client reconnects, and the log no longer has what it missed: every listen gets a gap.',
  ],
  reject: [
    'Reject token',
    'The server refuses the token once. A client that cannot get another one is opened after 5 s.',
  ],
  offline: ['Offline', 'No connection succeeds for 10 s.'],
}

/** Collaborators of {@link Panel}. */
export interface PanelContext {
  readonly client: WebMQClient
  readonly traffic: Traffic
  readonly trouble: Trouble
  /** The gaps of the client, the newest last. */
  readonly gaps: readonly (Gap & { readonly atMs: number })[]
}

/** The panel of the devtools: an element with a shadow root, refreshed while it is open. */
export class Panel {
  readonly element = document.createElement('webmq-devtools')
  readonly #context: PanelContext
  readonly #details = document.createElement('details')
  readonly #summary = document.createElement('summary')
  readonly #content = document.createElement('div')
  readonly #buttons = new Map<TroubleName, HTMLButtonElement>()
  readonly #timer: ReturnType<typeof setInterval>
  #last = { atMs: Date.now(), sentCount: 0, receivedCount: 0, sentBytes: 0, receivedBytes: 0 }
  #rates = ''

  constructor(context: PanelContext) {
    this.#context = context
    const style = document.createElement('style')
    style.textContent = STYLE
    const body = document.createElement('div')
    body.className = 'body'
    body.append(this.#troubles(), this.#content)
    this.#details.append(this.#summary, body)
    this.#details.addEventListener('toggle', () => this.refresh())
    this.element.attachShadow({ mode: 'open' }).append(style, this.#details)
    this.#timer = setInterval(() => this.refresh(), REFRESH_MS)
    this.refresh()
  }

  get isOpen(): boolean {
    return this.#details.open
  }

  set isOpen(isOpen: boolean) {
    this.#details.open = isOpen
  }

  remove(): void {
    clearInterval(this.#timer)
    this.element.remove()
  }

  refresh(): void {
    const { client, trouble } = this.#context
    const { attempt, state } = client.status
    this.#details.dataset.state = state
    this.#summary.textContent = `WebMQ: ${state}${attempt === undefined ? '' : `, attempt ${attempt}`}`
    if (!this.#details.open) return
    for (const [name, button] of this.#buttons) button.ariaPressed = String(trouble.isOn(name))
    this.#measure()
    const next = document.createElement('div')
    next.append(...this.#sections())
    patch(this.#content, next)
  }

  #troubles(): HTMLElement {
    const row = document.createElement('div')
    for (const name of TROUBLES) {
      const [label, title] = BUTTONS[name]
      const button = document.createElement('button')
      button.type = 'button'
      button.textContent = label
      button.title = title
      button.dataset.trouble = name
      button.addEventListener('click', () => {
        this.#context.trouble.start(name)
        this.refresh()
      })
      this.#buttons.set(name, button)
      row.append(button)
    }
    return row
  }

  #measure(): void {
    const { totals } = this.#context.traffic
    const { sentCount, receivedCount, sentBytes, receivedBytes, atMs } = this.#last
    const now = Date.now()
    const perSecond = (count: number) => Math.round((count * 1_000) / Math.max(1, now - atMs))
    if (now - atMs < REFRESH_MS / 2) return
    const received = `${perSecond(totals.receivedCount - receivedCount)} frames/s, ${perSecond(totals.receivedBytes - receivedBytes)} B/s received`
    const sent = `${perSecond(totals.sentCount - sentCount)} frames/s, ${perSecond(totals.sentBytes - sentBytes)} B/s sent`
    this.#rates = `${received}; ${sent}`
    this.#last = { ...totals, atMs: now }
  }

  #sections(): HTMLElement[] {
    const { client, gaps, traffic } = this.#context
    const { lastError, queueLength } = client.status
    const listens = [...traffic.listens.values()].map((listen) => [
      listen.pattern,
      listen.state,
      listen.position,
      String(listen.messageCount),
      listen.gapCount === 0 ? '' : `${listen.gapCount} (${listen.lastGap})`,
    ])
    const problem = lastError ? [lastError.message] : []
    return [
      heading('Publishes that wait'),
      table([], [[String(queueLength)]]),
      heading('Subscriptions'),
      table(['pattern', 'state', 'position', 'messages', 'gaps'], listens),
      heading('Gaps'),
      table(
        [],
        newest(gaps).map(({ atMs, pattern, reason, since = '' }) => [timeOf(atMs), pattern, reason, since]),
      ),
      heading('Errors'),
      table([], [problem, ...newest(traffic.errors).map(rowOf)]),
      heading(`Traffic: ${this.#rates}`),
      table([], newest(traffic.recent).map(rowOf)),
    ]
  }
}

function newest<T>(list: readonly T[]): T[] {
  return list.slice(-MAX_ROWS).reverse()
}

function rowOf({ atMs, isSent, head, payload, bytes }: Seen): string[] {
  return [timeOf(atMs), isSent ? '→' : '←', head, payload, `${bytes} B`]
}

function timeOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 23)
}

/** Makes an element what another one is. What is the same stays in place: a selection there survives. */
function patch(element: Element, next: Element): void {
  const [old, made] = [[...element.children], [...next.children]]
  if (made.length === 0 && element.textContent !== next.textContent) element.textContent = next.textContent
  if (element instanceof HTMLElement && next instanceof HTMLElement) element.title = next.title
  made.forEach((child, index) => {
    const known = old[index]
    if (known?.tagName === child.tagName) patch(known, child)
    else if (known) known.replaceWith(child)
    else element.append(child)
  })
  for (const gone of old.slice(made.length)) gone.remove()
}

function heading(text: string): HTMLElement {
  const element = document.createElement('h2')
  element.textContent = text
  return element
}

/** Cells are text, never markup: keys come from other clients. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): HTMLElement {
  const element = document.createElement('table')
  const row = (cells: readonly string[], tag: 'td' | 'th') => {
    const line = element.insertRow()
    for (const text of cells) {
      const cell = document.createElement(tag)
      cell.textContent = text
      cell.title = text
      line.append(cell)
    }
  }
  if (head.length > 0) row(head, 'th')
  for (const cells of rows) row(cells, 'td')
  return element
}
