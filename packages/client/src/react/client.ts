'use client'
import { createContext, createElement, type ReactElement, type ReactNode, useContext } from 'react'
import type { WebMQClient } from '../client.js'
import type { AnyClient } from '../of-client.js'
import { clientOf, type GivenClient } from '../stores/client.js'

const ClientContext = /* @__PURE__ */ createContext<GivenClient>(undefined)

/** Properties of {@link WebMQProvider}. */
export interface WebMQProviderProps {
  readonly client: AnyClient
  readonly children?: ReactNode
}

/** Gives a client to the hooks of all components in it. Without a provider, hooks use the client of `setup`. */
export function WebMQProvider({ client, children }: WebMQProviderProps): ReactElement {
  return createElement(ClientContext.Provider, { value: client }, children)
}

export function useGivenClient(): GivenClient {
  return useContext(ClientContext)
}

/** The client of the provider or, without one, of `setup`. Not while a server renders: there may be none. */
export function useClient(): WebMQClient {
  return clientOf(useGivenClient())
}
