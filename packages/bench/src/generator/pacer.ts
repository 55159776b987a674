import { workerData } from 'node:worker_threads'
import { KeyPlan } from '../load/key-plan.js'
import { SendSchedule } from '../load/send-schedule.js'
import { nowUs } from '../measure/clock.js'
import type { PacerData } from './messages.js'
import { PACER_STARTED, PacerControl } from './pacer-control.js'

/**
 * Thread that sleeps until the next message of any worker is due, and wakes that worker.
 *
 * Timers of an event loop fire on whole milliseconds, up to one late, which would be most of the measured latency. A
 * futex wait ends within some tens of microseconds.
 */
const { planOptions, workers, control: controlBuffer } = workerData as PacerData
const control = new PacerControl(controlBuffer)
const plan = new KeyPlan(planOptions)
const schedule = new SendSchedule(
  plan,
  Array.from({ length: planOptions.clientCount }, (_, client) => client),
)
const wakers = workers.map(({ port, pending, firstClient, endClient }) => {
  const isPending = new Int32Array(pending)
  const wake = () => {
    if (Atomics.exchange(isPending, 0, 1) === 0) port.postMessage(null)
  }
  return { firstClient, endClient, wake }
})

control.waitForStart()
while (control.state === PACER_STARTED && schedule.nextAtUs !== Number.POSITIVE_INFINITY) {
  const waitUs = control.startUs + schedule.nextAtUs - nowUs()
  if (waitUs > 0) {
    control.waitForStop(waitUs / 1_000)
    continue
  }
  const client = schedule.shift()?.client ?? 0
  wakers.find(({ firstClient, endClient }) => client >= firstClient && client < endClient)?.wake()
}
