'use client'
import { createContext, createElement, type ReactElement, type ReactNode, useContext } from 'react'
import type { AnyClient, GivenClient } from '../../core/of-client.js'

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

/** `client` or, without one, that of the provider. */
export function useGivenClient(client?: GivenClient): GivenClient {
  const provided = useContext(ClientContext)
  return client ?? provided
}
