import { createPane } from './pane.js'

const health = await fetch('health').then((response) => response.json())
document.querySelector('#node').textContent = `${health.node}\nwebmq-server ${health.version}`

const endpoint = new URL(health.path, location.href)
endpoint.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'

// `?pattern=…` replaces the patterns that the panes start with; `?token=…` would leak into logs, so a token comes after `#`.
const query = new URLSearchParams(location.search)
const token = new URLSearchParams(location.hash.slice(1)).get('token')
const patterns = query.getAll('pattern')

const panes = document.querySelector('#panes')
for (const [title, defaultPattern, key] of [
  ['Left', 'chat.*.message', 'chat.42.message'],
  ['Right', 'chat.#', 'chat.42.message'],
]) {
  panes.append(
    createPane({ title, url: endpoint.href, token, patterns: patterns.length ? patterns : [defaultPattern], key }),
  )
}
