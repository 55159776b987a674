import { WebMQClient } from './client/development.js'
import { createFeed } from './feed.js'
import { createPublisher } from './publisher.js'
import { createRatePlot } from './rate-plot.js'

/** One connection with its patterns, its publisher, its plot and its feed. Returns the pane's element. */
export function createPane({ title, url, token, patterns, key }) {
  const pane = document.querySelector('#pane').content.firstElementChild.cloneNode(true)
  const part = (selector) => pane.querySelector(selector)
  part('h2').textContent = title
  part('.publish').elements.key.value = key

  const feed = createFeed(part('.feed'))
  const plot = createRatePlot(part('canvas'), part('.now'))
  let client
  let stopStates
  /** Pattern to its subscription; outlives a disconnect by the user. */
  const listens = new Map()

  const showError = (error) => {
    const line = part('.error')
    line.hidden = error === undefined
    line.textContent = error === undefined ? '' : `${error.code ?? error.name}: ${error.message}`
  }

  function connect() {
    client = new WebMQClient({ url, ...(token ? { token } : {}) })
    const stops = [client.on('status', showState), client.on('error', showError)]
    stopStates = () => {
      for (const stop of stops) stop()
    }
    for (const pattern of listens.keys()) listen(pattern)
  }

  async function disconnect() {
    await client.close()
    stopStates()
    client = undefined
    showState({ state: 'idle' })
  }

  function listen(pattern) {
    const chip = listens.get(pattern)?.chip ?? addChip(pattern)
    chip.dataset.state = 'pending'
    const subscription = client.listen(pattern, (payload, message) => {
      plot.count()
      feed.add(message.key, payload, message.replayed)
    })
    subscription.on('gap', ({ reason }) => feed.note(`gap in ${pattern}: ${reason}`))
    listens.set(pattern, { chip, subscription })
    subscription.ready.then(
      () => {
        chip.dataset.state = 'active'
      },
      (error) => {
        showError(error)
        if (error.code !== 'E_CLOSED') forget(pattern)
      },
    )
  }

  function addChip(pattern) {
    const chip = document.createElement('li')
    const remove = document.createElement('button')
    remove.type = 'button'
    remove.textContent = '×'
    remove.ariaLabel = `Stop listening with ${pattern}`
    remove.addEventListener('click', () => forget(pattern))
    chip.append(pattern, remove)
    part('.patterns').append(chip)
    return chip
  }

  function forget(pattern) {
    const { chip, subscription } = listens.get(pattern)
    listens.delete(pattern)
    chip.remove()
    if (client !== undefined) subscription.close().catch(showError)
  }

  function showState({ state, retryInMs, reason }) {
    const output = part('.state')
    output.dataset.state = state
    const wait = retryInMs === undefined ? '' : ` in ${(retryInMs / 1000).toFixed(1)} s`
    output.lastElementChild.textContent = `${state}${wait}${state === 'closed' && reason ? `: ${reason}` : ''}`
    part('.toggle').textContent = state === 'idle' || state === 'closed' ? 'Connect' : 'Disconnect'
    if (state === 'connected') showError(undefined)
  }

  part('.toggle').addEventListener('click', () => {
    if (client === undefined || client.state === 'closed') connect()
    else disconnect().catch(showError)
  })
  part('.listen').addEventListener('submit', (event) => {
    event.preventDefault()
    const { pattern } = event.target.elements
    if (client === undefined || listens.has(pattern.value)) return
    showError(undefined)
    try {
      listen(pattern.value)
      pattern.value = ''
    } catch (error) {
      showError(error)
      listens.get(pattern.value)?.chip.remove()
      listens.delete(pattern.value)
    }
  })
  createPublisher(part('.publish'), { publish: (to, payload) => client?.publish(to, payload), onError: showError })

  connect()
  for (const pattern of patterns) listen(pattern)
  return pane
}
