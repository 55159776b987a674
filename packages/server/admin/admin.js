import { keyStore } from './api.js'
import { createConnections } from './connections.js'
import { createLookups, showPatterns } from './lookups.js'
import { createOptions } from './options.js'
import { createOverview } from './overview.js'
import { createTail } from './tail.js'
import { createViews } from './views.js'

const REFRESH_MS = 2_000

const [login, logout, welcome, main, problem, node] = ['login', 'logout', 'welcome', 'main', 'error', 'node'].map(
  (id) => document.getElementById(id),
)
const nav = document.querySelector('nav')
let timer
let isProblemOfRefresh = false

/**
 * Runs an action; its failure is shown, and a key that is refused is forgotten. A refresh leaves the failure of an
 * action to be read.
 */
async function guard(action, isRefresh = false) {
  try {
    if (!isRefresh || isProblemOfRefresh) problem.hidden = true
    await action()
    return true
  } catch (error) {
    problem.textContent = error.message
    problem.hidden = false
    isProblemOfRefresh = isRefresh
    if (error.isDenied) close()
    return false
  }
}

const connections = createConnections(guard)
const options = createOptions()
const overview = createOverview(connections.offer)
const tail = createTail(guard)
createLookups(guard)
createViews()
// A wide table scrolls in its section: also with keys.
for (const table of document.querySelectorAll('table')) table.closest('section').tabIndex = 0

async function open() {
  // One request with a wrong key is enough.
  if (!(await guard(() => overview.refresh()))) return
  setOpen(true)
  for (const show of [() => connections.show(), showPatterns, () => options.load()]) void guard(show)
  schedule()
}

function setOpen(isOpen) {
  main.hidden = nav.hidden = logout.hidden = !isOpen
  welcome.hidden = isOpen
}

/** The next look begins after this one has ended. A page that nobody sees does not look. */
function schedule() {
  clearTimeout(timer)
  timer = setTimeout(async () => {
    if (!document.hidden) await guard(() => Promise.all([overview.refresh(), showPatterns()]), true)
    if (!main.hidden) schedule()
  }, REFRESH_MS)
}

function close() {
  clearTimeout(timer)
  tail.end()
  keyStore.forget()
  setOpen(false)
}

/** Who answers here: anybody may know. */
async function showNode() {
  const health = await (await fetch('/health')).json()
  if (health.node !== undefined) node.textContent = `${health.node}\nwebmq-server ${health.version}`
}

login.onsubmit = (event) => {
  event.preventDefault()
  keyStore.save(new FormData(login).get('key').trim())
  login.reset()
  void open()
}
logout.onclick = close
void guard(showNode)
if (keyStore.read() !== null) void open()
