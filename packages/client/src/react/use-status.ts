'use client'
import type { ClientStatus } from '../events/events.js'
import { statusStore } from '../stores/status.js'
import { useSnapshot, useStore } from './use-store.js'

/** The state of the client: connected, waiting for another attempt, closed. It does not connect. */
export function useStatus(): ClientStatus {
  return useSnapshot(useStore('', statusStore))
}
