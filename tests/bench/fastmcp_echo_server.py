"""A rival of mcp.cpp: the smallest echo server on FastMCP."""
from fastmcp import FastMCP

server = FastMCP("echo")


@server.tool()
def echo(text: str) -> str:
    return text


server.run(show_banner=False)
