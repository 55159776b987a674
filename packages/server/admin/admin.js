import { keyStore } from './api.js'
import { createConnections } from './connections.js'
import { createLookups, showConfig, showPatterns } from './lookups.js'
import { createOverview } from './overview.js'
import { createTail } from './tail.js'

const REFRESH_MS = 2_000

const [login, logout, main, problem] = ['login', 'logout', 'main', 'error'].map((id) => document.getElementById(id))
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
const overview = createOverview(connections.offer)
const tail = createTail(guard)
createLookups(guard)
// A wide table scrolls in its section: also with keys.
for (const section of document.querySelectorAll('section')) section.tabIndex = 0

async function open() {
  // One request with a wrong key is enough.
  if (!(await guard(() => overview.refresh()))) return
  main.hidden = logout.hidden = false
  login.hidden = true
  for (const show of [() => connections.show(), showPatterns, showConfig]) void guard(show)
  schedule()
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
  main.hidden = logout.hidden = true
  login.hidden = false
}

login.onsubmit = (event) => {
  event.preventDefault()
  keyStore.save(new FormData(login).get('key').trim())
  login.reset()
  void open()
}
logout.onclick = close
if (keyStore.read() !== null) void open()
