import { setup, WebMQError } from 'webmq-client'
import { request } from 'webmq-client/parts'
import type { Count } from './primes'

setup({ url: '/ws' })

const form = document.querySelector('form') as HTMLFormElement
const answers = document.querySelector('ol') as HTMLOListElement

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const below = Number(new FormData(form).get('below'))
  const line = answers.appendChild(document.createElement('li'))
  line.textContent = `${below}: …`
  try {
    const { count, worker }: Count = await request('primes.count', below, { timeoutMs: 5_000 })
    line.textContent = `${below}: ${count} primes, says worker ${worker}`
    line.dataset.worker = String(worker)
  } catch (error) {
    // Nobody there, no answer in time, or what the worker says.
    if (!(error instanceof WebMQError)) throw error
    line.textContent = `${below}: ${error.message}`
    line.dataset.error = error.code
  }
})
