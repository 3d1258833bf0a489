// A program that knows of codeexec only through its plugin.
bool plugin_says_hello();

int main() { return plugin_says_hello() ? 0 : 1; }
